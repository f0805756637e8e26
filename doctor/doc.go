// Package doctor checks a loaded configuration and this machine. It warns and
// never blocks: what it names has already been made harmless at load, or is the
// operator's to decide.
//
// Each check is declared data: a code, a severity, a title, what to do, and a
// function that finds what it is about. [Examine] runs them all. What load had to
// say comes through the same table, so that a reader meets one list of codes.
//
// # Limitations
//
// doctor judges what is written, not what upstream servers do with it. That a
// sandbox backend is installed does not prove that it confines: its behaviour is
// tested where the sandbox starts. Of who may write to a place it knows the modes and
// the owners: no access lists, and not to whom the folders belong that lead to it from
// further above.
package doctor
