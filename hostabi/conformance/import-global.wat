;; An import that is not a function.
(import "env" "base" (global i32))
;; include guest
