package upstream_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/upstream"
)

const (
	sayDiscover    = `server/discover {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"capgate","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}`
	sayInitialize  = `initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"capgate","version":"0"}}`
	sayInitialized = "notifications/initialized"

	isModern = `{"resultType":"complete","supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{"tools":{}}}`
	isLegacy = `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`
)

// reply is how a server answers one method, and after how long.
type reply struct {
	after  time.Duration
	result string
	err    string
	failed error
}

func TestHandshake(t *testing.T) {
	var (
		foreign = &upstream.Failed{Upstream: "files", Text: "answers 404", Err: upstream.ErrForeign}
		broken  = &upstream.Failed{Upstream: "files", Text: "answers 503"}
		never   = time.Hour
	)
	for _, tt := range []struct {
		name       string
		protocol   string
		discover   []reply // the first time, the second
		initialize reply
		want       string // the revision, or part of the error
		spoken     []string
		took       time.Duration
	}{
		{
			name: "modern", discover: []reply{{result: isModern}},
			want: "2026-07-28", spoken: []string{sayDiscover},
		},
		{
			name: "modern, sloppy", discover: []reply{{result: `{"supportedVersions":["2026-07-28"]}`}},
			want: "2026-07-28", spoken: []string{sayDiscover},
		},
		{
			name: "asks for something", discover: []reply{{result: `{"resultType":"input_required","supportedVersions":["2026-07-28"]}`}},
			want: "with something else", spoken: []string{sayDiscover},
		},
		{
			name: "names only a legacy revision", discover: []reply{{result: `{"supportedVersions":["2025-11-25"]}`}},
			initialize: reply{result: isLegacy},
			want:       "2025-06-18", spoken: []string{sayDiscover, sayInitialize, sayInitialized},
		},
		{
			name: "another method of this name", discover: []reply{{result: `{"tools":[]}`}}, initialize: reply{result: isLegacy},
			want: "2025-06-18", spoken: []string{sayDiscover, sayInitialize, sayInitialized},
		},
		{
			name: "names nothing known", discover: []reply{{result: `{"supportedVersions":["2027-01-01"]}`}},
			want: "speaks no protocol revision", spoken: []string{sayDiscover},
		},
		{
			name:     "refuses once",
			discover: []reply{{err: `{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}`}, {result: isModern}},
			want:     "2026-07-28", spoken: []string{sayDiscover, sayDiscover},
		},
		{
			name: "refuses for ever",
			discover: []reply{
				{err: `{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}`},
				{err: `{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}`},
			},
			want: "names protocol revision 2026-07-28 and refuses it", spoken: []string{sayDiscover, sayDiscover},
		},
		{
			name:       "refuses and names a legacy revision",
			discover:   []reply{{err: `{"code":-32022,"message":"no","data":{"supported":["2025-11-25"]}}`}},
			initialize: reply{result: isLegacy},
			want:       "2025-06-18", spoken: []string{sayDiscover, sayInitialize, sayInitialized},
		},
		{
			name:     "refuses and names nothing",
			discover: []reply{{err: `{"code":-32022,"message":"no"}`}},
			want:     "speaks no protocol revision", spoken: []string{sayDiscover},
		},
		{
			name:     "a modern error is no legacy server",
			discover: []reply{{err: `{"code":-32020,"message":"headers"}`}},
			want:     `error -32020: "headers"`, spoken: []string{sayDiscover},
		},
		{
			name: "legacy", discover: []reply{{err: `{"code":-32601,"message":"no"}`}}, initialize: reply{result: isLegacy},
			want: "2025-06-18", spoken: []string{sayDiscover, sayInitialize, sayInitialized},
		},
		{
			name: "legacy over HTTP", discover: []reply{{failed: foreign}}, initialize: reply{result: isLegacy},
			want: "2025-06-18", spoken: []string{sayDiscover, sayInitialize, sayInitialized},
		},
		{
			name: "broken", discover: []reply{{failed: broken}},
			want: "answers 503", spoken: []string{sayDiscover},
		},
		{
			name: "silent", discover: []reply{{after: never}}, initialize: reply{result: isLegacy},
			want: "2025-06-18", spoken: []string{sayDiscover, sayInitialize, sayInitialized}, took: upstream.ProbeTime,
		},
		{
			name:     "slow and modern",
			discover: []reply{{after: 20 * time.Second, result: isModern}}, initialize: reply{after: 15 * time.Second, err: `{"code":-32601,"message":"no"}`},
			want: "2026-07-28", spoken: []string{sayDiscover, sayInitialize}, took: 20 * time.Second,
		},
		{
			name:     "slow and neither",
			discover: []reply{{after: never}}, initialize: reply{err: `{"code":-32601,"message":"no"}`},
			want: "refuses the handshake", spoken: []string{sayDiscover, sayInitialize}, took: 2 * upstream.ProbeTime,
		},
		{
			name: "silent for ever", discover: []reply{{after: never}}, initialize: reply{after: never},
			want: "the handshake took too long", spoken: []string{sayDiscover, sayInitialize}, took: time.Minute,
		},
		{
			name: "pinned modern", protocol: "2026-07-28", discover: []reply{{after: time.Second, result: isModern}},
			want: "2026-07-28", spoken: []string{sayDiscover}, took: time.Second,
		},
		{
			name: "pinned modern, is legacy", protocol: "2026-07-28", discover: []reply{{failed: foreign}},
			want: "does not speak protocol revision 2026-07-28", spoken: []string{sayDiscover},
		},
		{
			name: "pinned legacy", protocol: "2025-11-25", initialize: reply{result: isLegacy},
			want: `not spoken here: "2025-06-18"`, spoken: []string{sayInitialize},
		},
		{
			name: "unreadable", protocol: "2025-11-25", initialize: reply{result: `{"capabilities":{},"capabilities":{}}`},
			want: "duplicate key", spoken: []string{sayInitialize},
		},
		{
			name: "too long", protocol: "2025-11-25", initialize: reply{result: `{"instructions":"` + strings.Repeat("x", 1<<20) + `"}`},
			want: "longer than", spoken: []string{sayInitialize},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				discovered := 0
				g := &upstream.Greeter{Answer: func(ctx context.Context, r upstream.Request) (upstream.Answer, error) {
					how := tt.initialize
					if r.Method == "server/discover" {
						how = tt.discover[discovered]
						discovered++
					}
					return how.give(ctx)
				}}
				begin := time.Now()
				info, err := upstream.Greet(t.Context(), g, upstream.Client{Protocol: tt.protocol})
				if err != nil && !strings.Contains(err.Error(), tt.want) || err == nil && info.Version != tt.want {
					t.Errorf("got %q, %v, want %q", info.Version, err, tt.want)
				}
				if diff := cmp.Diff(tt.spoken, g.Spoken); diff != "" {
					t.Error(diff)
				}
				if took := time.Since(begin); took != tt.took {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				var f *upstream.Failed
				if err != nil && !errors.As(err, &f) {
					t.Errorf("%v is not one of Failed", err)
				}
			})
		})
	}
}

func (r reply) give(ctx context.Context) (upstream.Answer, error) {
	timer := time.NewTimer(r.after)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return upstream.Answer{}, &upstream.Failed{Upstream: "files", Text: "gave no answer", Err: context.Cause(ctx)}
	}
	if r.failed != nil {
		return upstream.Answer{}, r.failed
	}
	if r.err != "" {
		return upstream.Answer{Error: []byte(r.err)}, nil
	}
	return upstream.Answer{Result: []byte(r.result)}, nil
}
