package proxy_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"capgate/door"
)

// front serves as the command does: by way of a door.
func front(t *testing.T, h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Listener = door.Listen(context.WithoutCancel(t.Context()), s.Listener, door.Options{
		Handler: h, Path: "/mcp", First: time.Minute, Idle: time.Minute, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	s.Start()
	return s
}
