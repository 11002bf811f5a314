<?php
/**
 * Requests to the service.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** The service refused, or did not respond: nothing may be concluded from it but a no. */
final class Service_Error extends \RuntimeException {
	/** @var string A code of the API, or `unreachable`, `unexpected_response`, `not_configured`, `busy`. */
	public $reason;

	/**
	 * Make one.
	 *
	 * @param string $reason  The code.
	 * @param string $message For people.
	 */
	public function __construct( string $reason, string $message = '' ) {
		parent::__construct( '' === $message ? $reason : $message );
		$this->reason = $reason;
	}

	/**
	 * Note it in WooCommerce's log.
	 *
	 * @param int|string $about An order's id, or what else was asked about.
	 */
	public function log( $about ): void {
		wc_get_logger()->warning( ( is_int( $about ) ? "Order {$about}" : $about ) . ": {$this->reason}: {$this->getMessage()}", array( 'source' => 'countersign' ) );
	}
}

/** A client for what a shop does. A request is sent once more only if it is a read or has an Idempotency-Key. */
final class Client {
	const ATTEMPTS        = 2;
	const TIMEOUT_SECONDS = 5;
	const WAIT_MAX        = 3.0;
	const BODY_MAX        = 33554432;

	/**
	 * Read something.
	 *
	 * @param string $path Path and query.
	 * @return array The response's JSON.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	public static function get( string $path ): array {
		return self::decoded( self::send( 'GET', $path ) );
	}

	/**
	 * Do something once, whatever is lost on the way.
	 *
	 * @param string $path Path.
	 * @param array  $body Becomes JSON; members that are null or empty are left out.
	 * @param string $key  The Idempotency-Key; empty: one for this call.
	 * @return array The response's JSON.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	public static function post( string $path, array $body, string $key = '' ): array {
		$body = array_filter(
			$body,
			static function ( $value ) {
				return null !== $value && '' !== $value;
			}
		);
		$key  = '' === $key ? wp_generate_uuid4() : $key;
		return self::decoded( self::send( 'POST', $path, (string) wp_json_encode( (object) $body ), $key ) );
	}

	/**
	 * A file of the evidence; waits a moment until the record is in the log.
	 *
	 * @param string $path Path.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	public static function download( string $path ): string {
		return wp_remote_retrieve_body( self::send( 'GET', $path, '', '', array( 'Prefer' => 'wait=3' ) ) );
	}

	/**
	 * Send a request, again if that is safe.
	 *
	 * @param string $method  GET or POST.
	 * @param string $path    Path and query.
	 * @param string $body    JSON, or empty.
	 * @param string $key     The Idempotency-Key, or empty.
	 * @param array  $headers More headers.
	 * @return array The response, as WordPress gives it.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	private static function send( string $method, string $path, string $body = '', string $key = '', array $headers = array() ): array {
		$base = rtrim( Settings::get( 'base_url' ), '/' );
		if ( ! Settings::is_complete() ) {
			throw new Service_Error( 'not_configured', __( 'Countersign is not set up.', 'countersign-woocommerce' ) );
		}
		$headers['Authorization'] = 'Bearer ' . Settings::get( 'api_key' );
		if ( '' !== $body ) {
			$headers['Content-Type'] = 'application/json';
		}
		if ( '' !== $key ) {
			$headers['Idempotency-Key'] = $key;
		}
		$repeatable = 'GET' === $method || '' !== $key;
		for ( $attempt = 1; true; $attempt++ ) {
			$response = wp_remote_request(
				$base . $path,
				array(
					'method'              => $method,
					'headers'             => $headers,
					'body'                => '' === $body ? null : $body,
					'timeout'             => self::TIMEOUT_SECONDS,
					'redirection'         => 0,
					'limit_response_size' => self::BODY_MAX,
				)
			);
			$status   = is_wp_error( $response ) ? 0 : (int) wp_remote_retrieve_response_code( $response );
			if ( 200 === $status ) {
				Health::asked( '' );
				return $response;
			}
			$after     = is_wp_error( $response ) ? '' : (string) wp_remote_retrieve_header( $response, 'retry-after' );
			$wait      = is_numeric( $after ) ? (float) $after : 0.3;
			$temporary = in_array( $status, array( 0, 429, 500, 502, 503, 504 ), true ) || ( 409 === $status && '' !== $after );
			if ( ! $repeatable || ! $temporary || $attempt >= self::ATTEMPTS || $wait > self::WAIT_MAX ) {
				break;
			}
			usleep( (int) ( $wait * 1000000 ) );
		}
		if ( 0 === $status ) {
			Health::asked( 'unreachable' );
			throw new Service_Error( 'unreachable', __( 'The service could not be reached.', 'countersign-woocommerce' ) );
		}
		$error  = json_decode( wp_remote_retrieve_body( $response ), true );
		$error  = is_array( $error ) && is_array( $error['error'] ?? null ) ? $error['error'] : array();
		$reason = is_string( $error['code'] ?? null ) ? $error['code'] : 'unexpected_response';
		Health::asked( $reason );
		throw new Service_Error( $reason, is_string( $error['message'] ?? null ) ? $error['message'] : "HTTP {$status}" );
	}

	/**
	 * The JSON of a response.
	 *
	 * @param array $response As WordPress gives it.
	 * @throws Service_Error If it has none.
	 */
	private static function decoded( array $response ): array {
		$content = json_decode( wp_remote_retrieve_body( $response ), true );
		if ( ! is_array( $content ) ) {
			throw new Service_Error( 'unexpected_response' );
		}
		return $content;
	}
}
