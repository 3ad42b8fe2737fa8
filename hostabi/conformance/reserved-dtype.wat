;; An observation of a type whose number is reserved: f64.
;; include guest
(data (i32.const 0x506) "\09")
(data (i32.const 0x706) "\09")
