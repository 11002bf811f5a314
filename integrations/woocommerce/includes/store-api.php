<?php
/**
 * The Store API, by which the block checkout and apps place and pay orders.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

use Automattic\WooCommerce\StoreApi\Exceptions\RouteException;

/**
 * Which order a request is about, and how it is refused.
 */
final class Store_Api {

	/**
	 * The order in the address of the request, `/wc/store/v1/checkout/{id}`; 0 if it has none.
	 *
	 * @var int
	 */
	private static $order_id = 0;

	/**
	 * Add the hooks.
	 */
	public static function register(): void {
		// WP_REST_Server::respond_to_request(): around each request, those of a batch too.
		add_filter( 'rest_request_before_callbacks', array( self::class, 'begin' ), 10, 3 );
		add_filter( 'rest_request_after_callbacks', array( self::class, 'end' ) );
		// The routes Checkout and CheckoutOrder: just before a payment.
		add_action( 'woocommerce_store_api_checkout_order_processed', array( self::class, 'before_payment' ), PHP_INT_MAX );
	}

	/**
	 * Note the order of a request. WooCommerce itself looks who may pay it.
	 *
	 * @param mixed            $response Passed on.
	 * @param array            $handler  Of the route.
	 * @param \WP_REST_Request $request  The request.
	 */
	public static function begin( $response, $handler, $request ) {
		$found          = preg_match( '~^/wc/store(?:/v[0-9]+)?/checkout/([0-9]+)$~D', (string) $request->get_route(), $parts );
		self::$order_id = 1 === $found ? (int) $parts[1] : 0;
		return $response;
	}

	/**
	 * Forget it.
	 *
	 * @param mixed $response Passed on.
	 */
	public static function end( $response ) {
		self::$order_id = 0;
		return $response;
	}

	/**
	 * The order of this request.
	 */
	public static function order_id(): int {
		return self::$order_id;
	}

	/**
	 * The last moment before a payment.
	 *
	 * @param \WC_Order $order The order.
	 * @throws RouteException If it is not cleared, and is to be paid.
	 */
	public static function before_payment( $order ): void {
		try {
			if ( ! Gate::may_be_given( $order ) ) {
				throw new RouteException( 'countersign_not_cleared', esc_html( Gate::not_released() ), 400 );
			}
		} catch ( Service_Error $error ) {
			throw new RouteException( 'countersign_unavailable', esc_html( Gate::sorry() ), 503 );
		}
	}
}
