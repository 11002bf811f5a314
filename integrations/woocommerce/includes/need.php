<?php
/**
 * Whether a cart or an order needs anything, as the service says of its classes and its address.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** Asked once for each address, and known for a while. Unknown counts as needed. */
final class Need {
	/** Countries in WooCommerce, states of the Postal Service. Military mail has states in both. */
	const TERRITORIES   = array( 'AS', 'GU', 'MP', 'PR', 'VI' );
	const KNOWN_SECONDS = 10 * MINUTE_IN_SECONDS;

	/** While the service is away, a checkout does not wait for it again. */
	const AWAY         = 'countersign_need_away';
	const AWAY_SECONDS = MINUTE_IN_SECONDS;

	/**
	 * An address as the Postal Service writes it.
	 *
	 * @param \WC_Order $order The order.
	 * @param string    $kind  shipping or billing.
	 * @return string[] Country, state, and ZIP code; what was typed otherwise is helped.
	 */
	public static function place( $order, string $kind = 'shipping' ): array {
		list( $country, $state, $zip ) = array_map( 'trim', array( $order->{"get_{$kind}_country"}(), $order->{"get_{$kind}_state"}(), $order->{"get_{$kind}_postcode"}() ) );
		if ( 1 === preg_match( '/^([0-9]{5})[\s\p{Pd}.]*([0-9]{4})?[\s\p{Pd}.]*$/Du', $zip, $parts ) ) {
			$zip = implode( '-', array_slice( $parts, 1 ) );
		}
		return in_array( $country, self::TERRITORIES, true ) ? array( 'US', $country, $zip ) : array( $country, $state, $zip );
	}

	/**
	 * The question about an order; empty if its address is not complete.
	 *
	 * @param \WC_Order $order   The order.
	 * @param string[]  $classes Of what is in it.
	 */
	private static function question( $order, array $classes ): array {
		list( $country, $state, $zip ) = self::place( $order );
		return 'US' !== $country || 1 !== preg_match( '/^[A-Z]{2}$/D', $state ) || 1 !== preg_match( '/^[0-9]{5}(-[0-9]{4})?$/D', $zip ) ? array() : array(
			'product_classes' => $classes,
			'ship_to'         => array( 'state' => $state, 'zip' => substr( $zip, 0, 5 ) ),
			'residence_state' => self::residence( $order ),
		);
	}

	/**
	 * What an order needs.
	 *
	 * @param \WC_Order $order   The order.
	 * @param string[]  $classes Of what is in it.
	 * @param bool      $patient Whether a service that was away just now is asked again.
	 * @return array What the service says; empty if the address is not complete.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	public static function of( $order, array $classes, bool $patient = true ): array {
		$question = self::question( $order, $classes );
		$name     = 'countersign_need_' . md5( (string) wp_json_encode( array( $question, Settings::get( 'base_url' ), Settings::get( 'api_key' ) ) ) );
		$known    = array() === $question ? array() : get_transient( $name );
		if ( ! is_array( $known ) ) {
			if ( ! $patient && get_transient( self::AWAY ) ) {
				throw new Service_Error( 'unreachable' );
			}
			try {
				$known = Client::post( '/v1/requirements', $question );
			} catch ( Service_Error $error ) {
				set_transient( self::AWAY, 1, self::AWAY_SECONDS );
				throw $error;
			}
			delete_transient( self::AWAY );
			set_transient( $name, $known, self::KNOWN_SECONDS );
		}
		return $known;
	}

	/**
	 * Whether an order needs nothing, for sure.
	 *
	 * @param \WC_Order $order   The order.
	 * @param string[]  $classes Of what is in it.
	 */
	public static function is_nothing( $order, array $classes ): bool {
		try {
			return 'not_required' === ( self::of( $order, $classes, false )['decision'] ?? '' );
		} catch ( Service_Error $error ) {
			return false;
		}
	}

	/** An order as the checkout would make it now, as far as its need depends on it. */
	public static function of_checkout(): \WC_Order {
		$order = new \WC_Order();
		$order->set_customer_id( WC()->customer->get_id() );
		foreach ( array( 'billing_country', 'billing_state', 'billing_postcode', 'shipping_country', 'shipping_state', 'shipping_postcode' ) as $name ) {
			$order->{"set_{$name}"}( WC()->customer->{"get_{$name}"}() );
		}
		return $order;
	}

	/**
	 * The state where the buyer of an order lives.
	 *
	 * @param \WC_Order $order The order.
	 * @return string Two letters, or empty: not known.
	 */
	public static function residence( $order ): string {
		list( $country, $state ) = self::place( $order, 'billing' );
		if ( 'billing' !== Settings::get( 'residence' ) || 'US' !== $country || self::is_californian( $order ) ) {
			$state = '';
		}
		/**
		 * Filters where the buyer lives: what is not known is needed.
		 *
		 * @param string    $state Two letters, or empty: not known.
		 * @param \WC_Order $order The order; at the checkout one that is not stored, with addresses and customer alone.
		 */
		return (string) apply_filters( 'countersign_residence_state', $state, $order );
	}

	/**
	 * Whether an address of the order names California.
	 *
	 * @param \WC_Order $order The order.
	 */
	private static function is_californian( $order ): bool {
		$zips   = array( $order->get_billing_postcode(), $order->get_shipping_postcode() );
		$states = array_map( 'strtoupper', array( $order->get_billing_state(), $order->get_shipping_state() ) );
		// The ZIP codes of California begin with 900 to 961.
		return in_array( 'CA', $states, true ) || array() !== preg_grep( '/^\s*9(0[0-9]|[1-5][0-9]|6[01])/', $zips );
	}
}
