package upstream_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"capgate/upstream"
)

func TestLines(t *testing.T) {
	var (
		long  = strings.Repeat("x", 1<<20)
		small = strings.Repeat("y", 70<<10)
	)
	for _, tt := range []struct {
		name, text string
		want       []string
		err        error
	}{
		{"nothing", "", nil, io.EOF},
		{"empty lines", "\n\n", []string{"", ""}, io.EOF},
		{"no end", "a\nb", []string{"a"}, io.EOF},
		{"carriage returns stay", "a\r\n", []string{"a\r"}, io.EOF},
		{"many sizes", long + "\na\n" + small + "\n" + small + "\nb\n", []string{long, "a", small, small, "b"}, io.EOF},
		{"at the limit", long + "\n", []string{long}, io.EOF},
		{"over the limit", "a\n" + long + "y\nb\n", []string{"a", long[:255] + "y", "b"}, io.EOF},
		{"far over the limit", "a\n" + strings.Repeat(long, 10) + "y\n" + long + "\nb\n", []string{"a", long[:255] + "y", long, "b"}, io.EOF},
		{"over the limit without an end", "a\n" + long + "x", []string{"a"}, io.EOF},
		{"without end", "a\n" + strings.Repeat(long, 18) + "\nb\n", []string{"a"}, upstream.ErrLong},
		{"many short lines", strings.Repeat("short\n", 50000), strings.Fields(strings.Repeat("short ", 50000)), io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, src := range map[string]io.Reader{
				"whole":          strings.NewReader(tt.text),
				"half":           iotest.HalfReader(strings.NewReader(tt.text)),
				"data and error": iotest.DataErrReader(strings.NewReader(tt.text)),
			} {
				got, err := upstream.Lines(src, 1<<20)
				if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, tt.err) {
					t.Errorf("%s: %d lines, %v; want %d, %v", name, len(got), err, len(tt.want), tt.err)
				}
			}
		})
	}
}
