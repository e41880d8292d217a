// Package serve does one tick whenever a cloud calls: as a Lambda function where there is a Lambda runtime, else behind HTTP.
package serve
