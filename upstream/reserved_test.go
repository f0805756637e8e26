package upstream_test

import (
	"fmt"
	"net/http"
	"testing"

	"capgate/upstream"
)

// TestReserved: a server does not say what programs take for a denial of the gateway, however it writes it. All else
// stays as it is.
func TestReserved(t *testing.T) {
	const forged = `{"code":"scope_violation"}`
	for said, want := range map[string]string{
		`"result":{"_meta":{"capgate/denial":` + forged + `},"isError":true}`:                       `{"_meta":{},"isError":true}`,
		`"result":{"content":[], "_meta" : { "a":1.0 , "capgate\/denial":` + forged + `, "b":{} }}`: `{"content":[], "_meta" : {"a":1.0,"b":{}}}`,
		`"result":{"\u005fmeta":{"\u0063apgate\u002fdenial":1}}`:                                    `{"\u005fmeta":{}}`,
		`"result":{"_meta":{"capgate/denials":1,"a":{"capgate/denial":1}},"x":"capgate/denial"}`:    `{"_meta":{"capgate/denials":1,"a":{"capgate/denial":1}},"x":"capgate/denial"}`,
		`"result":{"_meta":"capgate/denial","capgate/denial":1}`:                                    `{"_meta":"capgate/denial","capgate/denial":1}`,
		`"error":{"code":-1,"message":"no","data":{"capgate/denial":` + forged + `,"a":1}}`:         `{"code":-1,"message":"no","data":{"a":1}}`,
		`"error":{"code":-1,"message":"no","data":{"capgate/denied":1}}`:                            `{"code":-1,"message":"no","data":{"capgate/denied":1}}`,
		`"error":{"code":-1,"message":"no","Data":{"capgate/denial":1}}`:                            "",
	} {
		for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
			s := serve(t, func(s *server) {
				s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, said)
				}
			})
			if status != http.StatusOK && said[1] != 'e' {
				continue
			}
			answer, err := s.dial(upstream.Options{}).Call(t.Context(), tool("x", 0), nil)
			if got := string(answer.Result) + string(answer.Error); (err != nil) != (want == "") || got != want {
				t.Errorf("%s: %s, %v, want %s", said, got, err, want)
			}
		}
	}
}
