package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

const (
	spanDigits = 5 // as many days still fit a time.Duration
	spanHint   = "write one whole number and a unit: 45s, 30m, 12h, 90d"
)

// parseSpan reads a span of time as people write it: one whole number and one
// unit. Nothing is guessed: a life that was read wrong is a token that lives on.
func parseSpan(text string) (time.Duration, error) {
	if text == "" {
		return 0, errors.New("a span of time is missing")
	}
	digits, unit := text[:len(text)-1], time.Duration(0)
	switch text[len(text)-1] {
	case 's':
		unit = time.Second
	case 'm':
		unit = time.Minute
	case 'h':
		unit = time.Hour
	case 'd':
		unit = 24 * time.Hour
	}
	number, err := strconv.Atoi(digits)
	if err != nil || number < 0 || unit == 0 || len(digits) > spanDigits || strconv.Itoa(number) != digits {
		return 0, fmt.Errorf("%.40q is no span of time", text)
	}
	return time.Duration(number) * unit, nil
}

const momentHint = "write how long ago it was, such as 30m, 12h or 90d, or a time: 2026-01-31, 2026-01-31T12:00:00Z"

// parseMoment reads a moment: how long ago it was, a time, or a day as it began here.
func parseMoment(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return t, nil
	}
	ago, err := parseSpan(text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%.40q is neither a span of time nor a time", text)
	}
	return now.Add(-ago), nil
}
