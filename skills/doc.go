// Package skills reads SKILL.md files and says what each requires, so that an agent
// is shown those that its set can satisfy and no others.
//
//	lib := skills.Load(opts, "skills", "more/skills")  // never fails; says what is hidden
//	for s := range lib.All() {
//		needs, ok := s.Requires()                 // what the gate asks
//		data, err := s.Read("SKILL.md")           // the bytes that were read at load
//	}
//
// [Parse] reads the SKILL.md of a skill that an upstream serves.
//
// A skill says under allowed-tools: which tools it uses, in the words of several
// agents; one table turns them into verbs and scopes. What nobody knows can be
// satisfied by nobody. Frontmatter that is broken, or that readers may understand
// in different ways, hides the skill: it never means that nothing is required.
//
// # Limitations
//
// What a skill requires is what it says. Its text can ask a model for anything; that
// is decided at the call, and a skill changes no decision.
//
// Clients know more ways to write a skill than one: a command file, a plugin without
// SKILL.md, an agent's own settings. Only folders with a SKILL.md are read; one that has
// such things in it requires some use of proc.eval, whatever they say.
//
// A file that has a second name on the disk (a hard link) is a file like any other.
package skills
