;; Numbers of a tensor at a place that is no multiple of 4.
;; include frame
;; include place
;; include observe
;; include choices
(global $elems i32 (i32.const 2))
(global $start i32 (i32.const 0))

(data (i32.const 0x487) "\01") (data (i32.const 0x48c) "\02")
(data (i32.const 0x4ac) "\00") (data (i32.const 0x4b4) "\00\06\00\00")
(data (i32.const 0xa00) "\03\00\00\00\02\00\00\00")
(data (i32.const 0x4b4) "\02\06\00\00") ;; values
