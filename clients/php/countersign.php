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

    /** What JSON says, or the bytes of a file: a dossier (ZIP), a certificate (PDF), a proof (text). */
    public function get(string $path): array|string
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

    /**
     * The event of an authentic message; null otherwise: then return 400.
     *
     * $secret is the endpoint's `whsec_…`, $headers are by name, $body has the bytes as received.
     */
    public static function verify_webhook(string $secret, array $headers, string $body): ?array
    {
        foreach (array_change_key_case($headers) as $name => $value) {
            $named[$name] = (string) (is_array($value) ? reset($value) : $value);
        }
        $id = $named["webhook-id"] ?? "";
        $stamp = $named["webhook-timestamp"] ?? "";
        if (!str_starts_with($secret, "whsec_") || !ctype_digit($stamp) || abs(time() - (float) $stamp) > 300) {
            return null;
        }
        $key = base64_decode(substr($secret, strlen("whsec_")));
        $expected = "v1," . base64_encode(hash_hmac("sha256", "$id.$stamp.$body", $key, true));
        // During a rotation there are several signatures; one of them has to match.
        foreach (explode(" ", $named["webhook-signature"] ?? "") as $given) {
            if (hash_equals($expected, $given)) {
                $event = json_decode($body, true);
                return isset($event["id"], $event["type"], $event["data"]) ? $event : null;
            }
        }
        return null;
    }

    private function send(string $path, array $headers = [], array $options = []): array|string
    {
        $curl = curl_init($this->url . $path);
        curl_setopt_array($curl, $options + [
            CURLOPT_HTTPHEADER => ["Authorization: Bearer $this->key", ...$headers],
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT => 10,
        ]);
        $body = (string) curl_exec($curl);
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        $is_json = str_starts_with((string) curl_getinfo($curl, CURLINFO_CONTENT_TYPE), "application/json");
        $answer = $is_json ? json_decode($body, true) : $body;
        if ($status !== 200) {
            $error = $answer["error"] ?? ["code" => "no_response", "message" => curl_error($curl)];
            throw new CountersignError("$error[code]: $error[message]", $status);
        }
        return $answer;
    }
}
