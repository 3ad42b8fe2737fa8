;; A MultiDiscrete action whose elements have the same number of values, and a start.
;; include frame
;; include place
;; include observe
;; include choices
(global $elems i32 (i32.const 2))
(global $start i32 (i32.const 5))

(data (i32.const 0x487) "\01") (data (i32.const 0x48c) "\02")
(data (i32.const 0x4ac) "\03\00\00\00\05\00\00\00")
(data (i32.const 0xa00) "\03\00\00\00\03\00\00\00")
