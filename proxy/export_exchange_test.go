package proxy

import "net/http"

// Streamed answers a request with one message before the answer, which takes as long as is
// said.
func Streamed(w http.ResponseWriter, wait func()) error {
	x := &exchange{visit: &visit{w: w, tenant: new(tenant)}, events: true}
	err := x.send(queued{text: []byte("{}")})
	wait()
	x.finish([]byte("1"), reply{result: []byte("{}")})
	return err
}
