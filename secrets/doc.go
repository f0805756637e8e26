// Package secrets resolves the handles of secrets and takes their values out of
// what comes back.
//
// A handle is {{secret:name}}. It stands where a value is needed, in the
// environment and the headers of an upstream or in an argument of a call, so
// that neither a configuration nor a model ever holds the value:
//
//	keeper, err := secrets.New(map[string]secrets.Source{
//		"github": {Env: "GITHUB_TOKEN"},
//		"files":  {File: "/run/secrets/files"},
//	}, secrets.Options{})
//	header, err := keeper.Expand("Bearer {{secret:github}}")
//	...
//	result = keeper.Scrub(result)
//
// A value is read when it is needed, so that one that was renewed is used with the
// next call, when a program is started, or when a server refuses the one before.
// Whoever fills in what an agent wrote asks [Handles], decides on each name, and puts
// [Keeper.Value] in its place: [Keeper.Expand] knows no agents.
//
// # What is scrubbed
//
// [Keeper.Scrub] replaces each value that was ever resolved by its handle: as it
// is, in hex, in base64 also where it is only a part of what was encoded, and all
// of these under up to two layers of JSON escapes and percent-encoding. A value
// shorter than 8 bytes is an error when it is resolved: what is that short stands
// in many a text by chance, and to replace it there would tear them up, while a
// secret that is not scrubbed would be seen.
//
// What a server has issued, see [Keeper.Learn], it has chosen, and so may have chosen a
// word: [Keeper.ScrubOf] takes such a one out of what that server says, and of nothing
// else. One that is random it takes out of everything.
//
// A handle needs no escape within a JSON string, so JSON stays JSON, unless a
// value stood outside of a string, as one of digits only may. Whoever forwards a
// document that Scrub has changed parses it again.
//
// # Limitations
//
// Scrubbing is for the server that repeats what it was given, in an error or an
// echo. One that means to give a secret away can reverse, split, compress or
// encrypt it. Base64 with line breaks, HTML entities, values of several lines of
// which one is shown, and the few bits that base64 leaves in the characters next
// to a value are not found. Neither is a value that is cut in two by the edge of
// what is scrubbed: it takes whole messages and lines.
//
// A word that is not secret but equals a value is replaced as well. A server may have
// issued a number that looks random and that others say, such as that of a commit.
//
// A value that no keeper of this process has resolved is not known: whoever starts one
// resolves what there is, see [Keeper.Check], but a value that was renewed while no
// process ran is seen when a server repeats it.
//
// Values stay in memory, in clear, until the process ends, also those that were
// renewed: there is a limit on how many. Of those that came from elsewhere, see
// [Keeper.Learn], the oldest make room. Who may debug the process reads them.
//
// A file that others may write to is not read. That they may read it is not looked at:
// where secrets are mounted into containers, that is usual. Nor are access control
// lists, and on Windows modes say nothing.
package secrets
