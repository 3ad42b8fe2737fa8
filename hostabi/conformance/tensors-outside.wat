;; Records that end outside the description.
;; include guest
(data (i32.const 0x420) "\12\00\00\00")
