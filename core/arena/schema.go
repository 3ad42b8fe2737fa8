package arena

import "github.com/rlhost/rlhost/hostabi/native"

// Schema describes what the blocks of an arena contain. It stays as it is for as long as the arena does.
type Schema interface {
	// Document returns the description for other processes.
	Document() *native.Schema
}

// Document returns the description of a schema for other processes, or nil for no schema.
func Document(s Schema) *native.Schema {
	if s == nil {
		return nil
	}
	return s.Document()
}
