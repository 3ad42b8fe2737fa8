;; No two groups have one name.
;; include groups
(data (i32.const 0x4a0) "\0f")
