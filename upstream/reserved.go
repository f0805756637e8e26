package upstream

import (
	"bytes"
	"slices"

	"capgate/wire"
)

// reserved is the member by which programs know a denial of the gateway, in _meta of a result and in data of an
// error. What a server says by it could be taken for one.
const reserved = "capgate/denial"

// disowned is an answer without that member in one of its own. Nearly all have none, and stay the bytes that they are.
func disowned(answer wire.Value, within string) []byte {
	whole := answer.Raw()
	inner, _ := answer.Get(within)
	if _, ok := inner.Get(reserved); !ok {
		return whole
	}
	var kept [][]byte
	for key, member := range inner.Members() {
		if !key.Equal(reserved) {
			kept = append(kept, slices.Concat(key.Raw(), []byte(":"), member.Raw()))
		}
	}
	begin, _ := answer.Span()
	start, end := inner.Span()
	return slices.Concat(whole[:start-begin], []byte("{"), bytes.Join(kept, []byte(",")), []byte("}"), whole[end-begin:])
}
