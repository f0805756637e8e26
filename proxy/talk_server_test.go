package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

// post is a request at the server that waits for its answer.
type post struct {
	id   string // as it is on the wire
	says chan saying
	over chan struct{} // closed when nobody waits any more
}

// say has the server say something, if somebody waits for it.
func (p *post) say(s saying) bool {
	if p == nil {
		return false
	}
	select {
	case p.says <- s:
		return true
	case <-p.over:
		return false
	}
}

// saying is what a server does about a request.
type saying struct {
	message string
	status  int
	cuts    bool
}

// act has the server do something else than to say a message.
func (k *talk) act(what string) {
	switch what {
	case "goes", "comes":
		k.mu.Lock()
		defer k.mu.Unlock()
		k.reachable = what == "comes"
		for _, c := range k.conns {
			c.Close()
		}
		k.conns, k.posts, k.last = nil, map[string]*post{}, nil
		return
	}
	s := saying{cuts: what == "cuts"}
	if !s.cuts {
		if _, err := fmt.Sscan(what, &s.status); err != nil {
			k.t.Fatal(err)
		}
	}
	k.about("", s)
}

// say has the server say a message.
func (k *talk) say(message string) {
	var m struct{ ID, Result, Error json.RawMessage }
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		k.t.Fatalf("%s: %v", message, err)
	}
	number := ""
	if m.Result != nil || m.Error != nil {
		number = string(m.ID)
	}
	k.about(number, saying{message: strings.Replace(message, "{", "{"+version, 1)})
}

// about tells the request of that number what becomes of it, or the last one.
func (k *talk) about(number string, s saying) {
	k.mu.Lock()
	p := k.last
	if number != "" {
		p = k.posts[number]
	}
	k.mu.Unlock()
	if p != nil && number != "" {
		s.message = strings.Replace(s.message, `"id":`+number, `"id":`+p.id, 1)
	}
	if !p.say(s) {
		k.note(unheard, "")
	}
}

// open reaches the server over HTTP, through connections that are no network.
func (k *talk) open(ctx context.Context, peer proxy.Peer) (upstream.Conn, error) {
	return upstream.Dial(ctx, upstream.Endpoint{Name: "files", URL: "http://files.test/mcp", Transport: "http", Dial: k.dial},
		upstream.Options{Client: peer.Client, Events: peer.Events})
}

func (k *talk) dial(context.Context, string, string) (net.Conn, error) {
	k.mu.Lock()
	reachable := k.reachable
	k.mu.Unlock()
	if !reachable {
		k.note(toServer, "a connection, in vain")
		return nil, errors.New("nobody listens")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	ours, theirs := net.Pipe()
	k.conns = append(k.conns, theirs)
	go serveOne(theirs, k)
	return ours, nil
}

// serveOne serves one connection, and returns when it is over.
func serveOne(conn net.Conn, h http.Handler) {
	l := &single{conn: conn, done: make(chan struct{})}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Hour, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			l.once.Do(func() { close(l.done) })
		}
	}}
	_ = server.Serve(l)
}

// single is a listener for one connection.
type single struct {
	conn net.Conn
	done chan struct{}
	once sync.Once
	mu   sync.Mutex
}

func (l *single) Accept() (net.Conn, error) {
	l.mu.Lock()
	conn := l.conn
	l.conn = nil
	l.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	<-l.done
	return nil, io.EOF
}

func (l *single) Close() error   { return nil }
func (l *single) Addr() net.Addr { return &net.TCPAddr{} }

// ServeHTTP is the server, which does what the talk says.
func (k *talk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		if r.Method == http.MethodDelete {
			k.note(toServer, "DELETE of the session")
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var envelope struct {
		ID     json.RawMessage
		Method string
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		panic(err)
	}
	member, own := k.byItself[envelope.Method]
	switch {
	case own && envelope.ID != nil:
		w.Header().Set("Content-Type", "application/json")
		if envelope.Method == "initialize" {
			w.Header().Set("Mcp-Session-Id", "it")
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, envelope.ID, member)
	case own:
		w.WriteHeader(http.StatusAccepted)
	case envelope.ID == nil || envelope.Method == "":
		k.note(toServer, k.counted(string(body)))
		w.WriteHeader(http.StatusAccepted)
	default:
		k.wait(w, r, string(envelope.ID), string(body))
	}
}

// wait keeps a request until the talk says what becomes of it.
func (k *talk) wait(w http.ResponseWriter, r *http.Request, id, body string) {
	p := &post{id: id, says: make(chan saying), over: make(chan struct{})}
	defer close(p.over)
	k.mu.Lock()
	k.requests++
	number := fmt.Sprint(k.requests)
	k.posts[number], k.numbers[id], k.last = p, number, p
	k.mu.Unlock()
	k.note(toServer, k.counted(body))
	begun := false
	for {
		select {
		case <-r.Context().Done():
			k.note(dropped, "request "+number)
			return
		case s := <-p.says:
			switch {
			case s.cuts:
				panic(http.ErrAbortHandler)
			case s.status != 0:
				w.WriteHeader(s.status)
				return
			}
			if !begun {
				begun = true
				w.Header().Set("Content-Type", "text/event-stream")
			}
			fmt.Fprintf(w, "data: %s\n\n", s.message)
			w.(http.Flusher).Flush()
			if strings.Contains(s.message, `"id":`+id+`,"result":`) || strings.Contains(s.message, `"id":`+id+`,"error":`) {
				return
			}
		}
	}
}

// counted replaces the id of a request by its number in the talk.
func (k *talk) counted(body string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return anID.ReplaceAllStringFunc(body, func(found string) string {
		m := anID.FindStringSubmatch(found)
		if number, ok := k.numbers[m[2]]; ok {
			return m[1] + number
		}
		return found
	})
}

var anID = regexp.MustCompile(`("(?:id|requestId)":)(\d+)\b`)
