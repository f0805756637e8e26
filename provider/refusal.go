package provider

import (
	"net/http"
	"strconv"
	"strings"

	"capgate/wire"
)

// faultForm is how a vendor writes errors.
type faultForm uint8

const (
	anthropicFault faultForm = iota
	openFault
	googleFault
)

// Refusal writes an error as the vendor would, so that its clients can show it. The
// code is part of the message too, as not every form has a place for it.
func (v Vendor) Refusal(refused Refused) []byte {
	status, code := refused.Status, refused.Code
	message := "capgate: " + string(code) + ": " + refused.Why
	word := faultWord(v.fault, status)
	var b []byte
	switch v.fault {
	case googleFault:
		b = append(b, `{"error":{"code":`+strconv.Itoa(status)+`,"message":`...)
		b = wire.AppendString(b, message)
		b = append(b, `,"status":"`+word+`","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"`...)
		return append(b, strings.ToUpper(string(code))+`","domain":"capgate"}]}}`...)
	case openFault:
		b = append(b, `{"error":{"message":`...)
		b = wire.AppendString(b, message)
		return append(b, `,"type":"`+word+`","param":null,"code":"`+string(code)+`"}}`...)
	}
	b = append(b, `{"type":"error","error":{"type":"`+word+`","message":`...)
	b = wire.AppendString(b, message)
	if refused.Detail != "" {
		b = append(b, `,"details":{"error_code":"`+refused.Detail+`"}`...)
	}
	return append(b, `}}`...)
}

// Failure writes an error as the last event of a stream. Clients of Google pass over
// an event that has a name.
func (v Vendor) Failure(refused Refused) []byte {
	var b []byte
	if v.fault != googleFault {
		b = append(b, "event: error\n"...)
	}
	b = append(append(b, "data: "...), v.Refusal(refused)...)
	return append(b, "\n\n"...)
}

// faultWord is what a vendor calls errors of a status.
func faultWord(form faultForm, status int) string {
	for _, row := range []struct {
		status int
		words  [3]string // Anthropic, OpenAI, Google
	}{
		{http.StatusBadRequest, [3]string{"invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"}},
		{http.StatusUnauthorized, [3]string{"authentication_error", "authentication_error", "UNAUTHENTICATED"}},
		{http.StatusForbidden, [3]string{"permission_error", "permission_error", "PERMISSION_DENIED"}},
		{http.StatusNotFound, [3]string{"not_found_error", "invalid_request_error", "NOT_FOUND"}},
		{http.StatusRequestEntityTooLarge, [3]string{"request_too_large", "invalid_request_error", "INVALID_ARGUMENT"}},
		{http.StatusUnsupportedMediaType, [3]string{"invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"}},
		{http.StatusTooManyRequests, [3]string{"rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED"}},
		{http.StatusServiceUnavailable, [3]string{"overloaded_error", "server_error", "UNAVAILABLE"}},
		{http.StatusGatewayTimeout, [3]string{"timeout_error", "server_error", "DEADLINE_EXCEEDED"}},
	} {
		if row.status == status {
			return row.words[form]
		}
	}
	if status < http.StatusInternalServerError {
		return [...]string{"invalid_request_error", "invalid_request_error", "FAILED_PRECONDITION"}[form]
	}
	return [...]string{"api_error", "server_error", "INTERNAL"}[form]
}
