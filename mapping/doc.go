// Package mapping says what a tool call requires: which verbs, on which files,
// hosts, programs and keys, read off the arguments that are about to be sent.
//
// A mapping is data that an operator writes or chooses, never something the
// server says about itself. It gives each argument of each tool a role:
//
//	server: files
//	tools:
//	  read_text_file: { path: fs.read, head: free, tail: free }
//	  move_file:      { source: [fs.read, fs.delete], destination: fs.write }
//	  edit_files:     { "edits[*].file.path": fs.write, "edits[*].text": free }
//
//	m, findings, err := mapping.Parse("files.yml", data)
//	tool := m.Tool("read_text_file") // nil when no mapping covers the tool
//	needs, err := tool.Require(mapping.Call{Name: "files.read_text_file", Args: args, View: view})
//
// The arguments are read where they stand in the message. What comes back is
// what the bytes need that will be forwarded, not what a decoded copy of them
// would need. An argument without a role is refused when it is there, one with a
// role when it is not, unless the mapping gives its default or calls it optional.
// Every value counts: each element of an array, each nested occurrence.
//
// # Roles
//
// A verb is a role; its resource decides how the value is read.
//
//	fs.read                          a path; also tree: true, glob: true
//	net.get                          a URL; net.connect a host:port; also as: url, as: host
//	{ verb: net, method: verb_arg }  a URL, under the verb that another argument names
//	proc.exec                        an argv, or plain words in one text
//	proc.eval                        a shell command line
//	{ in: proc.exec }                its working directory; argv0, argv and env likewise
//	memory.write                     a key; { verb: records.update, dim: class } another dimension
//	{ headers: [Accept] }            HTTP headers, those and no others
//	secret                           text in which {{secret:name}} is filled in, once the call is allowed
//	free                             any value, not looked at
//
// A list of roles means that all of them apply; what is free or secret stands alone.
// Besides arguments a tool may have
// requires: (what every call needs, whatever its arguments), label: (for the
// toxic-flow check) and additional: free (pass on arguments that are not listed;
// a URL among them still needs net.get). An argument that has one of these names
// is written with a dot in front: .label.
//
// # Prompts, resources, declarations
//
// prompts: gives the arguments of prompts roles in the same way. Every prompt needs
// prompt.get for its name; one that is listed needs what its arguments need as well,
// and takes no others. resources: gives a role to a scheme, to a URI, or to all that
// begins like one; without it a file: URI is a path under fs.read, a web address is
// under net.get, and anything else is under resource.read. declares: is what a
// server of the kind touches, where the configuration does not say it.
//
//	prompts:   { summarise: { file: fs.read, style: free } }
//	resources: { notes: memory.read, "docs://internal/*": resource.read, "graph://all": { requires: [memory.read] } }
//	declares:  { network: { allowedHosts: [api.example.com] } }
//
//	needs, err := m.Prompt("summarise").Require(…)
//	needs, err := m.Resource("docs", "file:///srv/a.md", view)
//	specs, findings, err := m.Declaration(agents.Declaration)
//
// # What could be called
//
// Possible says whether any arguments exist with which a call would be allowed, and
// names some. That is what a list shows:
//
//	args, ok := tool.Possible(mapping.Call{Name: "files.move_file", View: view}, chain, ceilings)
//
// # Limitations
//
// What a tool does with a value is the operator's word: a server that follows
// redirects, or reads a second file next to the one it was given, is held by the
// sandbox, not by its mapping. A path that hangs from another argument instead of
// the server's directory cannot be described yet, nor can a key of an object that
// is itself a path. Grants that limit arguments of an unmapped tool see their
// text only: the number 7 and the text "7" are one value to them, and the text "true" is none. URIs of resources
// are matched by what they begin with, not by globs; one that is only spelt in another way needs what
// its own spelling does as well.
//
// Among arguments passed on by additional: free, what has no scheme is a URL where a
// host with a dot, a port or a number follows two slashes: //server/share of Windows is none, as
// XPath and comments look like it, nor is a.com:443. A URL in the middle of a text is not looked for.
//
// Possible compares paths as text. A tool is shown where only a link, or the
// gateway's own files behind the only paths held, would keep every call from being
// allowed. It is shown as well where the work to find out is capped, and in the
// few cases that Possible names: the call decides.
package mapping
