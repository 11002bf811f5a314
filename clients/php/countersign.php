<?php
// countersign.php: what a shop in PHP needs of Countersign. PHP 8.1 or later, with curl.

final class CountersignError extends RuntimeException
{
}

final class Countersign
{
    public function __construct(private string $url, private string $key)
    {
    }

    public function get(string $path): array
    {
        return $this->send($path);
    }

    /** $once is the Idempotency-Key: the same for every attempt at the same thing. */
    public function post(string $path, array $body, ?string $once = null): array
    {
        $once ??= bin2hex(random_bytes(16));
        return $this->send(
            $path,
            ["Content-Type: application/json", "Idempotency-Key: $once"],
            [CURLOPT_POSTFIELDS => json_encode($body, JSON_THROW_ON_ERROR)],
        );
    }

    private function send(string $path, array $headers = [], array $options = []): array
    {
        $curl = curl_init($this->url . $path);
        curl_setopt_array($curl, $options + [
            CURLOPT_HTTPHEADER => ["Authorization: Bearer $this->key", ...$headers],
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT => 10,
        ]);
        $answer = json_decode((string) curl_exec($curl), true);
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        if ($status !== 200) {
            $error = $answer["error"] ?? ["code" => "no_response", "message" => curl_error($curl)];
            throw new CountersignError("$error[code]: $error[message]", $status);
        }
        return $answer;
    }
}
