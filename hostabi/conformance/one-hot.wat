;; A flag of a tensor that is reserved.
;; include guest
(data (i32.const 0x509) "\04")
