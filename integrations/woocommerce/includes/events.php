<?php
/**
 * Events of the service: by webhook, and once an hour by asking.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** An event only says that something changed; what it is now is read from the service. */
final class Events {
	const HOOK              = 'countersign_catch_up';
	const CURSOR            = 'countersign_events_after';
	const ALL               = array( 'buyer.expired', 'buyer.failed', 'buyer.requires_input', 'buyer.revoked', 'buyer.verified', 'checkout_session.completed', 'checkout_session.declined', 'checkout_session.expired' );
	const TOLERANCE_SECONDS = 300;
	const PAGES_MAX         = 20;
	// A message that is so old and did not come is missed.
	const LATE_SECONDS      = 300;
	// So long after its completion a parcel can still be on its way.
	const RECALL_SECONDS    = 30 * DAY_IN_SECONDS;
	const NEW_DECISION      = array( 'buyer.expired', 'buyer.failed', 'buyer.requires_input', 'buyer.revoked', 'buyer.verified' );

	/** Add the route and the hourly task. */
	public static function register(): void {
		add_action( 'rest_api_init', array( self::class, 'add_route' ) );
		add_action( self::HOOK, array( self::class, 'catch_up' ) );
		// Also on the sites of a network, where activating runs once.
		add_action( 'admin_init', array( self::class, 'schedule' ) );
	}

	/** On activation. */
	public static function schedule(): void {
		if ( ! wp_next_scheduled( self::HOOK ) ) {
			wp_schedule_event( time() + HOUR_IN_SECONDS, 'hourly', self::HOOK );
			Health::note( array( 'connected' => time() ) );
		}
	}

	/** On deactivation. */
	public static function unschedule(): void {
		wp_clear_scheduled_hook( self::HOOK );
		wp_unschedule_hook( Emails::LATER );
	}

	/** The address for the webhook endpoint. */
	public static function add_route(): void {
		register_rest_route(
			'countersign/v1',
			'/webhook',
			array(
				'methods'             => 'POST',
				'callback'            => array( self::class, 'receive' ),
				// The signature is what permits it.
				'permission_callback' => static function ( \WP_REST_Request $request ) {
					if ( '' === Settings::get( 'webhook_secret' ) ) {
						return new \WP_Error( 'countersign_no_secret', 'No webhook secret is set.', array( 'status' => 503 ) );
					}
					if ( self::is_authentic( $request ) ) {
						return true;
					}
					Health::does_not_fit();
					return new \WP_Error( 'countersign_signature', 'Not authentic.', array( 'status' => 400 ) );
				},
			)
		);
	}

	/**
	 * Whether the service signed this message in the last minutes: Standard Webhooks, `v1`.
	 *
	 * @param \WP_REST_Request $request The message.
	 */
	public static function is_authentic( \WP_REST_Request $request ): bool {
		$id     = (string) $request->get_header( 'webhook-id' );
		$stamp  = (string) $request->get_header( 'webhook-timestamp' );
		$secret = Settings::get( 'webhook_secret' );
		$key    = 0 === strpos( $secret, 'whsec_' ) ? base64_decode( substr( $secret, 6 ), true ) : false;
		if ( false === $key || '' === $key || '' === $id || 1 !== preg_match( '/^[0-9]{1,12}$/D', $stamp )
			|| abs( time() - (int) $stamp ) > self::TOLERANCE_SECONDS ) {
			return false;
		}
		$expected = 'v1,' . base64_encode( hash_hmac( 'sha256', "{$id}.{$stamp}." . $request->get_body(), $key, true ) );
		$found    = false;
		// During a rotation there are several.
		foreach ( explode( ' ', (string) $request->get_header( 'webhook-signature' ) ) as $given ) {
			$found = hash_equals( $expected, $given ) || $found;
		}
		return $found;
	}

	/**
	 * Take an authentic message: 204, or 503 if it has to be sent again.
	 *
	 * @param \WP_REST_Request $request The message.
	 */
	public static function receive( \WP_REST_Request $request ): \WP_REST_Response {
		$event = json_decode( $request->get_body(), true );
		Health::note( array( 'heard' => time() ) );
		// Signed with the message, unlike what a header could be changed to.
		$seen = self::seen( (string) $request->get_header( 'webhook-id' ) );
		if ( ! is_array( $event ) || get_transient( $seen ) ) {
			return new \WP_REST_Response( null, 204 );
		}
		try {
			self::apply( $event );
		} catch ( Service_Error $error ) {
			return new \WP_REST_Response( array( 'code' => $error->reason ), 503 );
		}
		set_transient( $seen, 1, 5 * DAY_IN_SECONDS );
		return new \WP_REST_Response( null, 204 );
	}

	/**
	 * The name of the mark of an event that a message brought.
	 *
	 * @param string $id The event's.
	 */
	private static function seen( string $id ): string {
		return 'countersign_event_' . md5( $id );
	}

	/**
	 * Make the webhook endpoint at the service, or a new secret for it, and store the secret.
	 *
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	public static function connect(): void {
		$url  = rest_url( 'countersign/v1/webhook' );
		$made = null;
		foreach ( (array) ( Client::get( '/v1/webhook_endpoints?limit=100' )['data'] ?? array() ) as $one ) {
			if ( $url === ( $one['url'] ?? '' ) && empty( $one['disabled_at'] ) ) {
				$made = Client::post( '/v1/webhook_endpoints/' . rawurlencode( $one['endpoint_id'] ) . '/rotate_secret', array() );
			}
		}
		$made = $made ?? Client::post(
			'/v1/webhook_endpoints',
			array( 'url' => $url, 'description' => 'WooCommerce', 'event_types' => self::ALL )
		);
		if ( ! is_string( $made['secret'] ?? null ) ) {
			throw new Service_Error( 'unexpected_response' );
		}
		Settings::set( 'webhook_secret', $made['secret'] );
		Health::note( array( 'connected' => time() ) );
		try {
			Client::post( '/v1/webhook_endpoints/' . rawurlencode( (string) $made['endpoint_id'] ) . '/send_example', array( 'type' => 'buyer.verified' ) );
		} catch ( Service_Error $error ) {
			// The set-up check shows whether it has come.
			$error->log( 'Webhook' );
		}
	}

	/**
	 * Ask about the orders that an event is about. Done twice, it changes nothing.
	 *
	 * @param array $event The event.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	private static function apply( array $event ): void {
		$data = is_array( $event['data'] ?? null ) ? $event['data'] : array();
		if ( is_string( $data['checkout_session_id'] ?? null ) ) {
			foreach ( self::orders( Orders::SESSION, $data['checkout_session_id'] ) as $id ) {
				Orders::locked( $id, array( Orders::class, 'settle' ) );
			}
		} elseif ( is_string( $data['cbid'] ?? null ) && in_array( $event['type'] ?? '', self::NEW_DECISION, true ) ) {
			foreach ( self::orders( Orders::BUYER, $data['cbid'] ) as $id ) {
				Orders::locked(
					$id,
					static function ( $order ) {
						// One that was refused stays so until somebody asks again: its payment may have been given up.
						$recent = $order->get_date_completed() && $order->get_date_completed()->getTimestamp() > time() - self::RECALL_SECONDS;
						if ( ( $order->has_status( array( 'pending', 'failed', 'on-hold', 'processing' ) ) || ( $order->has_status( 'completed' ) && $recent ) )
							&& in_array( Orders::state( $order ), array( 'cleared', 'overridden', 'undecided' ), true ) ) {
							Orders::decide( $order );
						}
					}
				);
			}
		}
	}

	/** Apply what no webhook brought: the events since the last time. */
	public static function catch_up(): void {
		$after = (string) get_option( self::CURSOR, '' );
		try {
			for ( $page = 0; $page < self::PAGES_MAX; $page++ ) {
				$query = '' === $after ? array( 'since' => gmdate( 'Y-m-d\TH:i:s\Z', time() - DAY_IN_SECONDS ) ) : array( 'after' => $after );
				$list  = Client::get( '/v1/events?' . http_build_query( $query + array( 'limit' => 100 ) ) );
				foreach ( (array) ( $list['data'] ?? array() ) as $event ) {
					$made = (int) strtotime( (string) ( $event['created_at'] ?? '' ) );
					if ( in_array( $event['type'] ?? '', self::ALL, true ) && $made < time() - self::LATE_SECONDS && ! get_transient( self::seen( (string) ( $event['id'] ?? '' ) ) ) ) {
						Health::note( array( 'missed' => $made ) );
					}
					self::apply( (array) $event );
					$after = (string) ( $event['id'] ?? $after );
					update_option( self::CURSOR, $after, false );
				}
				if ( ! is_string( $list['next_cursor'] ?? null ) ) {
					return;
				}
				$after = $list['next_cursor'];
			}
		} catch ( Service_Error $error ) {
			if ( 'cursor_expired' === $error->reason ) {
				delete_option( self::CURSOR );
			}
			$error->log( 'Events' );
		}
	}

	/**
	 * Ids of the orders with this value.
	 *
	 * @param string $name  A meta key.
	 * @param string $value Its value.
	 * @return int[]
	 */
	private static function orders( string $name, string $value ): array {
		// phpcs:ignore WordPress.DB.SlowDBQuery
		$query = array( 'limit' => -1, 'return' => 'ids', 'type' => 'shop_order', 'meta_key' => $name, 'meta_value' => $value );
		return '' === $value ? array() : array_map( 'intval', wc_get_orders( $query ) );
	}
}
