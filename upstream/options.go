package upstream

import "log/slog"

// Options are what a connection is given, over either transport.
type Options struct {
	Client Client
	Limits Limits

	// Events takes what belongs to no call: changes of lists, logs, and what the
	// server asks when no call is in flight. Nil drops it and refuses.
	Events Sink

	// Shared is set when several parties use the connection. What the server asks
	// without saying for which call is then for the events to answer, even while
	// one call alone is in flight: the server may ask for one that was given up.
	Shared bool

	// Log takes what the server does wrong, and what it says on its standard
	// error. Nil is silence.
	Log *slog.Logger

	// Scrub takes secrets out of what the server says, before it is cut short for the
	// log or an error: half of a secret is not found any more. Nil changes nothing.
	Scrub func([]byte) []byte
}

// orDefault fills in what may be left out.
func (o Options) orDefault() Options {
	if o.Limits.Message <= 0 {
		o.Limits.Message = maxMessage
	}
	if o.Events == nil {
		o.Events = unheard{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
