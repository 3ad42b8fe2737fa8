;; Numbers of a tensor within the head.
;; include frame
;; include place
;; include observe
;; include choices
(global $elems i32 (i32.const 2))
(global $start i32 (i32.const 0))

(data (i32.const 0x487) "\01") (data (i32.const 0x48c) "\02")
(data (i32.const 0x4ac) "\00") (data (i32.const 0x4b4) "\00\06\00\00")
(data (i32.const 0xa00) "\03\00\00\00\02\00\00\00")
(data (i32.const 0x4b4) "\40\00\00\00") ;; values
