package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	receiverPath = "/callback"
	receiverTime = 5 * time.Second // for a request to arrive, and for the last answer to leave
	receiverSize = 16 << 10        // bytes of a request's headers
)

// receiver waits for the browser to come back to this machine. It takes one
// answer, and only the one to this login: any page can send a browser here.
type receiver struct {
	listener net.Listener
	server   *http.Server
	expects  func(url.Values) bool
	answers  chan url.Values
}

func newReceiver(ctx context.Context) (*receiver, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{listener: l, answers: make(chan url.Values, 1)}
	r.server = &http.Server{
		Handler: r, ReadTimeout: receiverTime, WriteTimeout: receiverTime, MaxHeaderBytes: receiverSize,
	}
	return r, nil
}

func (r *receiver) url() string { return "http://" + r.listener.Addr().String() + receiverPath }

// serve takes answers to a login from now on.
func (r *receiver) serve(l interface{ Expects(url.Values) bool }) {
	r.expects = l.Expects
	go func() { _ = r.server.Serve(r.listener) }() // it ends when it is closed
}

// close lets the browser have its last answer.
func (r *receiver) close() {
	ctx, cancel := context.WithTimeout(context.Background(), receiverTime)
	defer cancel()
	_ = errors.Join(r.server.Shutdown(ctx), r.listener.Close())
}

// ServeHTTP takes the answer that the browser brings.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Connection", "close")
	answer, err := url.ParseQuery(req.URL.RawQuery)
	switch {
	case req.Host != r.listener.Addr().String(), req.URL.Path != receiverPath:
		http.Error(w, "There is nothing here.", http.StatusNotFound)
		return
	case req.Method != http.MethodGet:
		http.Error(w, "That is not how a browser comes back.", http.StatusMethodNotAllowed)
		return
	case err != nil, !r.expects(answer):
		http.Error(w, "This is not the answer to a login that is under way.", http.StatusBadRequest)
		return
	}
	select {
	case r.answers <- answer:
		h.Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("capgate has the answer. You can close this page; the terminal says what came of it.\n"))
	default:
		http.Error(w, "The login has had its answer already.", http.StatusGone)
	}
}
