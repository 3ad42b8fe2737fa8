package engine

// checkedKind is part of the names of marks; another one makes all modules unchecked.
const checkedKind = "checked 1"

// Checked reports whether MarkChecked has been called for the module with that hash, by any process of this user.
func (e *Engine) Checked(hash string) bool {
	return e.cache != nil && e.cache.Marked(e.cache.Name(checkedKind, []byte(hash)))
}

// MarkChecked remembers, next to the compiled code, that the environments of the module with that hash write all required values and
// nothing else. It logs an error if it cannot.
func (e *Engine) MarkChecked(hash string) {
	if e.cache == nil {
		return
	}
	if err := e.cache.Mark(e.cache.Name(checkedKind, []byte(hash))); err != nil {
		e.log.Warn("it is not remembered that a module was checked", "reason", err)
	}
}
