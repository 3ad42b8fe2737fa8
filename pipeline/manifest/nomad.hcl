# nomad job run THIS, where clients have docker and a host volume "rlhost" that all of them share, with the pipeline file in it.
# The image: podman build -t {{.Image}} . in rlhost's sources.
job "{{.Label}}" {
  type = "batch"

  group "run" {
    volume "work" {
      type   = "host"
      source = "rlhost"
    }
    network {
      port "join" {
        static = {{.Port}}
      }
    }
    task "rlhost" {
      driver = "docker"
      config {
        image        = {{hcl .Image}}
        args         = {{hclList .Train}}
        network_mode = "host"
      }
      volume_mount {
        volume      = "work"
        destination = "/work"
      }
      resources {
        cores = {{.Cores}}
      }
    }
  }

  group "hosts" {
    count = {{.Hosts}}
    volume "work" {
      type   = "host"
      source = "rlhost"
    }
    constraint {
      operator = "distinct_hosts"
      value    = "true"
    }
    task "rlhost" {
      driver = "docker"
      config {
        image        = {{hcl .Image}}
        args         = {{hclList (.Join "")}}
        network_mode = "host"
      }
      volume_mount {
        volume      = "work"
        destination = "/work"
      }
      resources {
        cores = {{.Cores}}
      }
    }
  }
}
