;; A dimension of 0.
;; include guest
(data (i32.const 0x50c) "\00")
