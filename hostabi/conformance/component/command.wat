;; A module that exports _start is a program, not a component.
;; include guest
;; include slot
(func (export "_start"))
