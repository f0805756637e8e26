package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"

	"capgate/capability"
	"capgate/config"
)

// at is a configuration as the command line would have it: with another place to
// listen at.
func (a *app) at(cfg *config.Config, view capability.View) (*config.Config, error) {
	if a.listen == "" {
		return cfg, nil
	}
	l, err := cfg.Listen.At(a.listen, view)
	if err != nil {
		return nil, usage(fmt.Errorf("--listen: %w", err), "write 127.0.0.1:8420 or unix:./gate.sock; for an address that others reach, listen: with tls: in the configuration")
	}
	other := *cfg
	other.Listen = l
	return &other, nil
}

// listen opens what agents connect to.
func listen(ctx context.Context, w *world, log *slog.Logger) (net.Listener, error) {
	c, room := w.cfg.Listen, min(openFiles()/4, mostConnections) // a call takes one more file, to its server
	if c.Socket != "" {
		l, err := listenUnix(ctx, c.Socket)
		if err != nil {
			return nil, err
		}
		return newCrowd(l, room, log), nil
	}
	var shown *pair
	if c.Cert != "" {
		var err error
		if shown, err = readPair(c.Cert, c.Key, log); err != nil {
			return nil, fmt.Errorf("the certificate of listen: %w", err)
		}
	}
	first, err := new(net.ListenConfig).Listen(ctx, network(c.Address), c.Address)
	if err != nil {
		return nil, err
	}
	l := newCrowd(first, room, log)
	if c.Cert == "" {
		return l, nil
	}
	return tls.NewListener(l, &tls.Config{GetCertificate: shown.get, MinVersion: tls.VersionTLS12}), nil
}

// network is where an address is listened at: 0.0.0.0 would be every one of IPv6, too.
func network(address string) string {
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().Is4() {
		return "tcp4"
	}
	return "tcp"
}

// listenHint says what can be done about an address that cannot be listened at.
func listenHint(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, errTaken):
		return "another process uses the address: end it, or write another one with --listen"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have the address"
	case errors.Is(err, fs.ErrPermission):
		return "this user may not listen there: take a port from 1024 on, or a folder of its own for a socket"
	case errors.Is(err, fs.ErrNotExist):
		return "make the folder or the file that is missing"
	}
	return ""
}

var errTaken = errors.New("somebody listens there already")

// listenUnix opens a socket that only its owner may use. One that a gateway has
// left behind is removed, one that somebody listens to is not: of several that start at once, one gets it.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	defer alone(filepath.Dir(path))()
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("%s is there and is not a socket", path)
		}
		if conn, err := new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, errTaken), conn.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	defer ownersOnly()()
	return new(net.ListenConfig).Listen(ctx, "unix", path)
}
