package wasm

// checkedKind begins what the names of marks are made from; another one makes all modules unchecked.
const checkedKind = "checked 1"

// Checked reports whether MarkChecked has been called for the module with that hash, by any process of this user.
func (r *Runtime) Checked(hash string) bool {
	return r.cache != nil && r.cache.Marked(r.cache.Name(checkedKind, []byte(hash)))
}

// MarkChecked remembers, beside the compiled code, that the environments of the module with that hash write what they have to and nothing
// else. Where nothing can be kept that is logged.
func (r *Runtime) MarkChecked(hash string) {
	if r.cache == nil {
		return
	}
	if err := r.cache.Mark(r.cache.Name(checkedKind, []byte(hash))); err != nil {
		r.log.Warn("it is not remembered that a module was checked", "reason", err)
	}
}
