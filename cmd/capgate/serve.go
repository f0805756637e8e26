package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"capgate/door"
	"capgate/guardrail"
	"capgate/proxy"
)

const (
	headerTime = 10 * time.Second       // for the headers of a request to arrive
	idleTime   = 2 * time.Minute        // a connection without a request
	headerSize = 64 << 10               // bytes
	endTime    = 3 * time.Second        // for requests to end when the gateway does
	lastTime   = 200 * time.Millisecond // of it, to tell so those that have not
)

func (a *app) serve() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway over HTTP",
		Long: "serve answers every agent at /mcp, each recognised by its own token, and keeps in\n" +
			"step with the configuration and the records while it runs.",
		Example: "  capgate serve -c config.example.yml\n  capgate agents token issue scout -c config.example.yml",
		Args:    takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			go guardrail.Prepare()
			a.listen = listen
			w, err := a.load()
			if err != nil {
				return err
			}
			ctx, stop := untilEnded(cmd.Context())
			defer stop()
			return a.runServer(ctx, w)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "an `address` of this machine instead of the one in the configuration, such as 127.0.0.1:0 or unix:./gate.sock")
	return cmd
}

// runServer serves until the context ends.
func (a *app) runServer(ctx context.Context, w *world) error {
	tune()
	log := a.logger(w, slog.LevelInfo)
	g, err := openGateway(ctx, w, log)
	if err != nil {
		return broken(err, "")
	}
	g.mirrors = &mirrors{log: log, clean: w.isClean, secrets: w.servers.keeper.Known, next: make(chan mirrored, 1)}
	from, err := g.watched(w, a.at)
	if err != nil {
		return errors.Join(broken(err, ""), g.close())
	}
	l, err := listen(ctx, w, log)
	if err != nil {
		return errors.Join(broken(err, listenHint(err)), g.close())
	}
	a.greet(g, l)
	ctx, stop := context.WithCancel(ctx)
	var mirroring sync.WaitGroup
	mirroring.Go(func() { g.mirrors.follow(ctx) })
	done := make(chan error, 1)
	go func() {
		defer stop() // a gateway that no longer sees what is revoked must not go on
		done <- g.watch(ctx, from)
	}()
	err = serveHTTP(ctx, l, g.server, log)
	stop()
	err = errors.Join(err, <-done, g.close())
	mirroring.Wait()
	return err
}

// serveHTTP answers until the context ends, and lets requests end after that.
func serveHTTP(ctx context.Context, l net.Listener, front *proxy.Server, log *slog.Logger) error {
	only := new(http.Protocols) // see [proxy.Server.ServeHTTP]
	only.SetHTTP1(true)
	srv := &http.Server{
		Handler: front, Protocols: only, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerSize,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	srv.BaseContext = func(net.Listener) context.Context { return requests }
	in := door.Listen(requests, l, door.Options{Handler: front, Path: "/mcp", First: headerTime, Idle: idleTime, Log: log})
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(in) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		log.Info("the gateway ends", "why", context.Cause(ctx))
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	defer time.AfterFunc(endTime-lastTime, cut).Stop()
	if err := errors.Join(srv.Shutdown(last), in.Wait(last)); err != nil {
		return srv.Close() // who has not ended by now is cut off
	}
	return nil
}

// unconfined logs which programs nothing confines. Their arguments may hold what is
// not for everybody.
func (w *world) unconfined(log *slog.Logger) {
	for _, up := range w.cfg.Upstreams {
		if up.Command != nil {
			log.Warn("the program of an upstream runs unconfined", "upstream", up.Name, "program", up.Command[0])
		}
	}
}

// greet says where the gateway is, and what whoever runs it should know.
func (a *app) greet(g *gateway, l net.Listener) {
	u, w := a.ui, g.world
	at := w.address(l)
	u.note("listening at %s", at)
	if everywhere(l) {
		u.note("it listens at every address of this machine; hosts: of listen: names those that others reach it by")
	}
	if origin, ok := strings.CutSuffix(at, "/mcp"); ok && w.cfg.Listen.Socket == "" {
		u.introduce(origin, w.policy.Providers)
	}
	if creds, _, err := credentials(g.store); err == nil {
		for range creds.All() {
			return
		}
		u.note("no agent has a token yet: %s", a.here("capgate agents token issue AGENT"))
	}
}

// address is where clients find a listener: of one at every address, by the first of its
// names, or else on this machine.
func (w *world) address(l net.Listener) string {
	c, at := w.cfg.Listen, l.Addr().String()
	if here, ok := l.Addr().(*net.TCPAddr); ok && here.IP.IsUnspecified() {
		name := "127.0.0.1"
		switch {
		case len(c.Hosts) > 0:
			name = c.Hosts[0]
		case here.IP.To4() == nil:
			name = "::1"
		}
		if _, _, err := net.SplitHostPort(name); err == nil {
			at = name
		} else {
			at = net.JoinHostPort(strings.Trim(name, "[]"), strconv.Itoa(here.Port))
		}
	}
	switch {
	case c.Socket != "":
		return "unix:" + c.Socket
	case c.Cert != "":
		return "https://" + at + "/mcp"
	}
	return "http://" + at + "/mcp"
}

// everywhere reports whether a listener is at every address, which is none to connect to.
func everywhere(l net.Listener) bool {
	at, ok := l.Addr().(*net.TCPAddr)
	return ok && at.IP.IsUnspecified()
}
