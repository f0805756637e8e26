package main

import (
	"testing"
	"time"
)

func TestParseSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0s": 0, "45s": 45 * time.Second, "30m": 30 * time.Minute, "12h": 12 * time.Hour, "90d": 90 * 24 * time.Hour,
		"99999d": 99999 * 24 * time.Hour,
	} {
		if got, err := parseSpan(text); got != want || err != nil {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "s", "90", "d90", "+1d", "-1d", "01d", " 1d", "1d ", "1 d", "1D", "1.5h", "1h30m", "1e3s", "1_0d", "0x1d", "100000d",
		"1w", "1y", "1ms", "1µs", "١d", "never", "99999999999999999999d",
	} {
		if got, err := parseSpan(text); err == nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("here", 3600))
	for text, want := range map[string]string{
		"36h": "2026-02-27T23:00:00Z", "2026-02-01": "2026-01-31T23:00:00Z", "2026-02-01T08:00:00+02:00": "2026-02-01T06:00:00Z",
	} {
		got, err := parseMoment(text, now)
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "yesterday", "2026-02-30", "2026-2-1", "12:00", "2026-02-01 08:00:00"} {
		if got, err := parseMoment(text, now); err == nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func FuzzParseSpan(f *testing.F) {
	for _, text := range []string{"90d", "0s", "1h30m", "-1d", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseSpan(text)
		if err == nil && (got < 0 || len(text) > spanDigits+1) {
			t.Errorf("%q: got %v", text, got)
		}
	})
}
