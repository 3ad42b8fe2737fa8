;; A string table that ends outside the description.
;; include guest
(data (i32.const 0x430) "\00\02")
