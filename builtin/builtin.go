package builtin

import (
	"context"
	"crypto/x509"
	"embed"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"capgate/capability"
	"capgate/mapping"
	"capgate/upstream"
	"capgate/wire"
)

// Options is what a server is opened with.
type Options struct {
	Name string // the upstream's name

	// Root is the directory that the files server serves, and that relative
	// paths hang from.
	Root capability.Root

	// Decide is asked at the moment of use for what is about to be touched: a nil
	// error allows, and a denial is a *capability.Denied. It is also asked for
	// each entry that a list or a search would show; what it denies there is left
	// out. Without it everything is denied. It must be safe for use by several
	// goroutines.
	Decide func(*capability.Requirement) error

	Limits  Limits
	Version string // of the gateway, as hosts and clients are told

	// Resolve finds the addresses of a host, nil for the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)

	// Roots are the authorities whose certificates count, nil for the system's.
	Roots *x509.CertPool

	// Dial connects to an address over TCP, nil for the system's.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// Limits bounds what one call may cost. A zero is the default.
type Limits struct {
	Read     int           // bytes of a file in one result
	Write    int           // bytes that one call writes
	Entries  int           // entries that a list or a search looks at
	Response int           // bytes of a response's body
	Answer   int           // bytes of a result; a file or a body in it may have half as many
	Time     time.Duration // of a whole call
}

// The limits that stand where Limits has none.
const (
	DefaultRead     = 1 << 20
	DefaultWrite    = 8 << 20
	DefaultEntries  = 50_000
	DefaultResponse = 5 << 20
	DefaultAnswer   = 64 << 20
	DefaultTime     = 30 * time.Second
)

func (l Limits) withDefaults() Limits {
	for _, f := range [...]struct {
		field *int
		value int
	}{{&l.Read, DefaultRead}, {&l.Write, DefaultWrite}, {&l.Entries, DefaultEntries}, {&l.Response, DefaultResponse}, {&l.Answer, DefaultAnswer}} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	l.Read, l.Response = min(l.Read, l.Answer/2), min(l.Response, l.Answer/2) // they are longer as they are written
	if l.Time <= 0 {
		l.Time = DefaultTime
	}
	return l
}

// The kinds of servers.
const (
	kindFiles = "fs"
	kindNet   = "net"
)

// Kinds returns the kinds of servers there are, sorted.
func Kinds() []string { return []string{kindFiles, kindNet} }

// Open opens a server of a kind.
func Open(kind string, o Options) (upstream.Conn, error) {
	o.Limits = o.Limits.withDefaults()
	switch kind {
	case kindFiles:
		f, err := openFiles(o)
		if err != nil {
			return nil, fmt.Errorf("open upstream %q: %w", o.Name, err)
		}
		return connect(kind, o, f.tools(), f.root.Close), nil
	case kindNet:
		w := &web{Options: o}
		return connect(kind, o, w.tools(), func() error { return nil }), nil
	}
	return nil, unknown(kind)
}

func unknown(kind string) error {
	return fmt.Errorf("there is no builtin %q; capgate has %s", kind, strings.Join(Kinds(), ", "))
}

//go:embed fs.yml net.yml
var mappings embed.FS

// Mapping returns what the tools of a kind of server require.
func Mapping(kind string) (*mapping.Mapping, error) {
	data, err := mappings.ReadFile(kind + ".yml")
	if err != nil {
		return nil, unknown(kind)
	}
	m, _, err := mapping.Parse("builtin/"+kind+".yml", data)
	return m, err
}

// connect makes a connection of a server's tools.
func connect(kind string, o Options, tools []tool, shut func() error) upstream.Conn {
	c := &conn{name: o.Name, tools: tools, most: o.Limits.Answer, time: o.Limits.Time, done: make(chan struct{}), close: shut}
	c.server = wire.AppendString([]byte(`{"name":`), "capgate-"+kind)
	c.server = append(wire.AppendString(append(c.server, `,"version":`...), o.version()), '}')
	c.list = append(c.list, `{"tools":[`...)
	for i := range tools {
		if i > 0 {
			c.list = append(c.list, ',')
		}
		c.list = tools[i].definition(c.list)
	}
	c.list = append(c.list, "]}"...)
	return c
}

func (o Options) version() string {
	if o.Version == "" {
		return "unknown"
	}
	return o.Version
}
