// Package agents knows the agents: it reads their records in four dialects, says
// which set each of them holds under its parents, and edits records in place.
//
// A folder of records becomes a [Roster], an immutable snapshot; a [Registry]
// keeps the one in force and replaces it when the folder changes:
//
//	registry, err := agents.Open(agents.Options{Config: root, View: view}, []string{"agents"}, log)
//	go registry.Watch(ctx)
//	chain, err := registry.Current().Chain("agents/scout")
//	decision := chain.Decide(requirement)
//
// # Records
//
// A Markdown file is an Egghead record when its frontmatter says class: agent,
// or names no class and has capabilities:, access: or sandbox:. It is a Rye
// directive when its text holds a <permissions> block. A YAML file is a Scarab
// manifest when it has spec.capabilities, an Ethos personality when it has
// fs_reach: or safety:, or toolset: and no class, and else a record without
// prose. An XML file is a directive. dialect: settles it for any of them. Files
// that show none of this hold no agent, and no agent means no authority; so do
// records of another class.
//
// Reading is strict where a slip would grant: a key that nearly is one that
// bears authority, a key of another dialect, a value of the wrong type, anchors
// and aliases, keys that stand twice, a second document and what an editor does
// not show make the whole record an error, an [Invalid] with its place. The
// agent of such a record is known and is denied everything. A single grant that
// cannot be read is left out with a finding; the sandbox: shorthand then grants
// nothing that this grant may have been to limit.
//
// # Lineage
//
// A call of an agent must be in its own set and in what each of its ancestors
// may use or pass on. A parent that is missing or broken passes on nothing. The
// toolsets and the approvals of all of them count: see [Lineage].
//
// # Changes
//
// What a changed record takes away is gone when it is read, some 50 ms later. What
// it gives counts at once where it was renamed over the one before, and else when
// the file has stayed as it is for half a second. Until then the roster is kept
// within [Roster.Before], and a record that is new is denied everything. A file
// that is empty, or holds no agent for a moment, is broken and not deleted.
//
// # Limitations
//
// Ids are what records say they are: an id that vanished and comes back is a new
// agent to this package, which keeps no tombstones. A file that is saved in
// several steps, at the start or with half a second between two of them, is
// believed as it is between them; what is read then is either a whole record or
// a broken one, but a YAML record cut off between two keys is whole. Symbolic links are not followed,
// also where a mounted volume is made of them. [WriteFile] locks out other edits
// made with it, not editors; what those write in the moment between its last
// look and the replacement is lost; it keeps mode and owner, not extended
// attributes. Only Egghead records are edited. [Edit] compares paths by their
// text unless it is told the roots and the file system, and a sandbox: beyond
// the configuration's root, which was clamped, is inert once it is dissolved.
// Folders are locked where the platform has flock.
package agents
