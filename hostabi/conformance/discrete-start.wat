;; A Discrete action from -1 on.
;; include frame
;; include place
;; include observe
;; include choices
(global $elems i32 (i32.const 1))
(global $start i32 (i32.const -1))

(data (i32.const 0x4b0) "\ff\ff\ff\ff")
(data (i32.const 0xa00) "\02\00\00\00")
