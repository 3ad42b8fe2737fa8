;; Of several groups each has a name.
;; include groups
(data (i32.const 0x4a0) "\00")
