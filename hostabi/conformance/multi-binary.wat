;; A MultiBinary action.
;; include frame
;; include place
;; include observe
;; include choices
(global $elems i32 (i32.const 3))
(global $start i32 (i32.const 0))

(data (i32.const 0x487) "\01\02\08\00\00\03")
(data (i32.const 0xa00) "\02\00\00\00\02\00\00\00\02\00\00\00")
