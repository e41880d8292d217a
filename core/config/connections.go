package config

// Refs are the references of all connections; empty where there is none.
type Refs struct {
	Database DatabaseRefs `json:"database"`
	Redis    DatabaseRefs `json:"redis"`
	RabbitMQ RabbitRefs   `json:"rabbitmq"`
}

// DatabaseRefs are a service's references.
type DatabaseRefs struct {
	URL               string `json:"url"`
	WorkerURL         string `json:"worker_url"`
	CA                string `json:"ca,omitempty"`
	ClientCertificate string `json:"client_certificate,omitempty"`
}

// RabbitRefs are the references of RabbitMQ.
type RabbitRefs struct {
	ManagementURL string `json:"management_url"`
	WorkerURL     string `json:"worker_url"`
	VHost         string `json:"vhost"`
	CA            string `json:"ca,omitempty"`
}

func (c Connections) refs() Refs {
	return Refs{
		Database: DatabaseRefs{URL: c.Database.URL.orElse(""), WorkerURL: c.Database.WorkerURL.orElse(c.Database.URL.orElse("")),
			CA: c.Database.CA.orElse(""), ClientCertificate: c.Database.ClientCertificate.orElse("")},
		Redis:    DatabaseRefs{URL: c.Redis.URL.orElse(""), WorkerURL: c.Redis.WorkerURL.orElse(c.Redis.URL.orElse("")), CA: c.Redis.CA.orElse("")},
		RabbitMQ: RabbitRefs{ManagementURL: c.RabbitMQ.ManagementURL.orElse(""), WorkerURL: c.RabbitMQ.WorkerURL.orElse(""), VHost: c.RabbitMQ.VHost, CA: c.RabbitMQ.CA.orElse("")},
	}
}

func (r *Reference) orElse(other string) string {
	if r == nil {
		return other
	}
	return string(*r)
}
