package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"capgate/proxy"
)

const (
	headerTime = 10 * time.Second // for the headers of a request to arrive
	idleTime   = 2 * time.Minute  // a connection without a request
	headerSize = 64 << 10         // bytes
	endTime    = 3 * time.Second  // for requests to end when the gateway does
)

func (a *app) serve() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway over HTTP",
		Long: "serve answers every agent at /mcp, each recognised by its own token, and keeps in\n" +
			"step with the configuration and the records while it runs.",
		Example: "  capgate serve -c config.example.yml\n  capgate agents token issue scout",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := a.load()
			if err != nil {
				return err
			}
			if listen != "" {
				w.cfg.Listen.Address, w.cfg.Listen.Socket = listen, ""
			}
			if err := loopbackOnly(w, listen); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return a.runServer(ctx, w)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "an `address` of this machine instead of the one in the configuration, such as 127.0.0.1:0")
	return cmd
}

// loopbackOnly refuses an address from the command line that others could reach:
// what protects one stands in the configuration.
func loopbackOnly(w *world, listen string) error {
	if listen == "" || w.cfg.Listen.Cert != "" {
		return nil
	}
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return usage(fmt.Errorf("--listen %s is not an address of this machine alone", listen), "write listen: with tls: in the configuration")
}

// runServer serves until the context ends.
func (a *app) runServer(ctx context.Context, w *world) error {
	tune()
	log := a.logger()
	if err := wider(w, log); err != nil {
		return broken(err, "")
	}
	g, err := openGateway(ctx, w, log)
	if err != nil {
		return broken(err, "")
	}
	from, err := g.watched(w)
	if err != nil {
		return errors.Join(broken(err, ""), g.close())
	}
	l, err := listen(ctx, w)
	if err != nil {
		return errors.Join(broken(err, "another process may use the address"), g.close())
	}
	a.greet(g, l)
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		defer stop() // a gateway that no longer sees what is revoked must not go on
		done <- g.watch(ctx, from)
	}()
	err = serveHTTP(ctx, l, g.server, log)
	stop()
	return errors.Join(err, <-done, g.close())
}

// tune lets the collector run less often: what the gateway keeps is small, and
// what it makes is short-lived.
func tune() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// listen opens what agents connect to.
func listen(ctx context.Context, w *world) (net.Listener, error) {
	c := w.cfg.Listen
	if c.Socket != "" {
		return listenUnix(ctx, c.Socket)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Address)
	if err != nil || c.Cert == "" {
		return l, err
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}), nil
}

// listenUnix opens a socket that only its owner may use. One that a gateway has
// left behind is removed, one that somebody listens to is not.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("%s is there and is not a socket", path)
		}
		if conn, err := new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
			return nil, errors.Join(fmt.Errorf("somebody listens at %s already", path), conn.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	mask := syscall.Umask(0o177)
	defer syscall.Umask(mask)
	return new(net.ListenConfig).Listen(ctx, "unix", path)
}

// serveHTTP answers until the context ends, and lets requests end after that.
func serveHTTP(ctx context.Context, l net.Listener, front *proxy.Server, log *slog.Logger) error {
	srv := &http.Server{
		Handler: front, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerSize,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := srv.Shutdown(last); err != nil {
		return srv.Close() // who has not ended by now is cut off
	}
	return nil
}

// greet says where the gateway is, and what whoever runs it should know.
func (a *app) greet(g *gateway, l net.Listener) {
	u, w := a.ui, g.world
	at := "http://" + l.Addr().String()
	if w.cfg.Listen.Cert != "" {
		at = "https://" + l.Addr().String()
	}
	if w.cfg.Listen.Socket != "" {
		u.note("listening at unix:%s", w.cfg.Listen.Socket)
	} else {
		u.note("listening at %s/mcp", at)
		u.introduce(at, w.policy.Providers)
	}
	for _, up := range w.cfg.Upstreams {
		if up.Command != nil {
			u.note("upstream %s runs unconfined: %s", up.Name, strings.Join(up.Command, " "))
		}
	}
	if creds, _, err := credentials(g.store); err == nil {
		for range creds.All() {
			return
		}
		u.note("no agent has a token yet: capgate agents token issue AGENT")
	}
}
