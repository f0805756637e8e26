package main

import (
	"log/slog"
	"slices"

	"capgate/doctor"
)

// logLoose logs, in one line, that others could change what agents may do, unless all of it was
// so when the world before was put in force.
func (w *world) logLoose(before *world, log *slog.Logger) {
	w.loose = doctor.Loose(w.places(), ownUser())
	for _, f := range w.loose {
		if before == nil || !slices.Contains(before.loose, f) {
			log.Warn("others could change what agents may do", "finding", f.String(), "code", f.Code, "places", len(w.loose), "see", "capgate doctor")
			return
		}
	}
}
