;; A trap in rl_manifest.
;; include imports
;; include memory
;; include marker
;; include alloc
;; include check
;; include configure
;; include records
;; include start
;; include slot
(func (export "rl_manifest") (param $buf i32) (param $cap i32) (result i32) (unreachable))
