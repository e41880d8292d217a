package serve

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/lambda"
)

// lambda hands calls to the Lambda runtime; it does not return. An error makes the call a failed one.
func (f *Function) lambda(ctx context.Context) {
	lambda.StartWithOptions(func(ctx context.Context, event json.RawMessage) (Answer, error) {
		due, err := eventDue(event)
		if err != nil {
			return Answer{}, err
		}
		return f.Do(ctx, due)
	}, lambda.WithContext(ctx))
}
