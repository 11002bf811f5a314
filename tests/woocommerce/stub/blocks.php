<?php
/**
 * What the block checkout needs of a payment method.
 */

namespace Automattic\WooCommerce\Blocks\Payments\Integrations;

defined( 'ABSPATH' ) || exit;

/** src/Blocks/Payments/Integrations/AbstractPaymentMethodType.php, with what PaymentMethodTypeInterface demands. */
abstract class AbstractPaymentMethodType {
	protected $name = '';
	protected $settings = array();

	abstract public function initialize();

	public function get_name() {
		return $this->name;
	}

	public function is_active() {
		return true;
	}

	public function get_payment_method_script_handles() {
		return array();
	}

	public function get_payment_method_data() {
		return array();
	}
}
