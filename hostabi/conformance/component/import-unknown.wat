;; An import that does not exist.
(import "rl_component" "shell" (func))
;; include guest
;; include slot
