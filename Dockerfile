# A static binary in an image that holds nothing else: no shell, no package
# manager, a user without rights.
#
# The build step is the one that .ci/run checks; keep the two alike.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /capgate ./cmd/capgate

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /capgate /capgate
USER 65532:65532
EXPOSE 8420
ENTRYPOINT ["/capgate"]
CMD ["serve", "-c", "/etc/capgate/capgate.yml"]
