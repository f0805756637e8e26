package main

// What capgate says on a terminal:
//
//   - what was asked for goes to standard output and nothing else does;
//   - every other line begins with "capgate: " and a word: error, hint, warning, note;
//   - lower case, no full stop at the end, one thought a line;
//   - an error says what is the case, its hint what to do about it;
//   - colour marks risk and effect and nothing else, and only on a terminal;
//   - with --json, standard output is one JSON value, or one event a line, and no colour.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/term"

	"capgate/agents"
	"capgate/capability"
	"capgate/config"
)

type ui struct {
	std   stdio
	color bool
	json  bool
	lost  error // why something that was asked for could not be written, nil if all was
}

func newUI(std stdio) *ui { return &ui{std: std} }

// paintIf decides whether colour is used: always, never, or on a terminal that
// does not ask for none.
func (u *ui) paintIf(setting string) {
	f, isFile := u.std.out.(*os.File)
	switch {
	case u.json || setting == "never":
		u.color = false
	case setting == "always":
		u.color = true
	default:
		u.color = isFile && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
}

// The colours.
const (
	green  = "32"
	yellow = "33"
	red    = "31"
	faint  = "2"
	bold   = "1"
)

func (u *ui) paint(color, text string) string {
	if !u.color || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func riskColor(r capability.Risk) string { return [...]string{green, yellow, red}[r] }

func severityColor(s capability.Severity) string { return [...]string{faint, yellow, red}[s] }

// printf writes to standard output, as it is: what others have written goes through plain
// or cell first, once.
func (u *ui) printf(format string, a ...any) { u.write(u.std.out, format, a...) }

// write keeps in mind that what was asked for is lost. Of the rest nobody could be told.
func (u *ui) write(w io.Writer, format string, a ...any) {
	if _, err := fmt.Fprintf(w, format, a...); err != nil && w == u.std.out && u.lost == nil {
		u.lost = fmt.Errorf("what was asked for is lost: %w", err)
	}
}

// emit writes one JSON value.
func (u *ui) emit(v any) error {
	enc := json.NewEncoder(u.std.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// fail says why a command did not do what was asked. A configuration may have
// several things wrong with it, each with its own hint.
func (u *ui) fail(err error) {
	if list := config.Errors(err); len(list) > 0 {
		for _, e := range list {
			u.wrong(strings.TrimPrefix(u.place(e.Pos)+": "+e.Text, ": "), e.Hint)
		}
		return
	}
	hint := ""
	if e, ok := errors.AsType[*exit](err); ok {
		hint = e.hint
	}
	if e, ok := errors.AsType[*agents.Invalid](err); ok {
		u.wrong(strings.TrimPrefix(u.place(e.Pos)+": "+e.Text, ": "), cmp.Or(e.Hint, hint))
		return
	}
	if e, ok := errors.AsType[*agents.Refusal](err); ok {
		u.wrong(strings.TrimPrefix(u.place(e.Pos)+": "+e.Text, ": "), cmp.Or(e.Hint, hint))
		return
	}
	hint = cmp.Or(remedy(err), hint)
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\t' })
	u.wrong(strings.ReplaceAll(strings.Join(lines, "; "), "Did you mean this?; ", "did you mean "), hint)
}

// remedy says what can be done where a disk does not take what is written, "" for anything else.
func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "make room on the disk"
	case errors.Is(err, syscall.EROFS):
		return "for what the gateway keeps, state: of the configuration names another folder"
	}
	return ""
}

func (u *ui) wrong(text, hint string) {
	u.line(u.std.err, red, "error", text)
	if hint != "" {
		u.line(u.std.err, faint, "hint", hint)
	}
}

// place is a position as seen from the working directory.
func (u *ui) place(p capability.Pos) string {
	p.File = u.short(p.File)
	return p.String()
}

// short is a file as seen from the working directory, when it lies below it.
func (u *ui) short(file string) string {
	if rel, ok := strings.CutPrefix(file, u.std.dir+"/"); ok && u.std.dir != "" {
		return rel
	}
	return file
}

func (u *ui) line(w io.Writer, color, word, text string) {
	fmt.Fprintf(w, "capgate: %s: %s\n", u.paint(color, word), plain(text))
}

func (u *ui) note(format string, a ...any) {
	u.line(u.std.err, faint, "note", fmt.Sprintf(format, a...))
}

// finding writes one finding, its hint on a line of its own.
func (u *ui) finding(w io.Writer, f capability.Finding) {
	at := plain(u.place(f.Pos))
	if at != "" {
		at += ": "
	}
	u.write(w, "%s%s: %s %s\n", at, u.paint(severityColor(f.Severity), f.Severity.String()), plain(f.Text), u.paint(faint, "["+f.Code+"]"))
	if f.Hint != "" {
		u.write(w, "    %s %s\n", u.paint(faint, "hint:"), plain(f.Hint))
	}
}

// ask puts a yes-or-no question to the person at the terminal.
func (u *ui) ask(question string) (bool, error) {
	answer, err := u.prompt(plain(question) + " [y/N] ")
	if err != nil {
		return false, err
	}
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", nil
}

// prompt reads one line, byte by byte so that nothing beyond it is consumed.
func (u *ui) prompt(text string) (string, error) {
	fmt.Fprint(u.std.err, text)
	const maxLine = 64 << 10
	var line []byte
	var b [1]byte
	for len(line) < maxLine {
		n, err := u.std.in.Read(b[:])
		ended := n == 1 && b[0] == '\n' || err != nil && len(line) > 0
		switch {
		case ended:
			return strings.TrimSpace(string(line)), nil
		case n == 1:
			line = append(line, b[0])
		case err != nil:
			return "", fmt.Errorf("nothing was answered")
		}
	}
	return "", fmt.Errorf("the answer is over %d bytes", maxLine)
}
