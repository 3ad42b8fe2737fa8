;; What most cases are made from: they add rl_slot, and what they are about.
;; include imports
;; include memory
;; include marker
;; include alloc
;; include check
;; include configure
;; include manifest
;; include start
